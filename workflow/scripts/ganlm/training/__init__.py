"""Training loops; checkpoint.py is the one place that saves and resumes."""
