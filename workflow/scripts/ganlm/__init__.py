"""How good a language model is a text generator that only emits samples?"""
