#!/usr/bin/env perl
# A generator in another language: letter pairs of a training text, behind JSON lines (see docs/your-generator.md).
use strict;
use warnings;
use JSON::PP;

my $json = JSON::PP->new;
$| = 1;

my $hello  = $json->decode(scalar <STDIN>);
my $number = 0;
my %id     = map { $_ => $number++ } @{ $hello->{symbols} };

# All followers of each letter, so that a uniform choice among them is a draw from the bigram distribution.
open(my $file, '<', $ARGV[0]) or die "cannot read $ARGV[0]: $!\n";
my @text = map { $id{$_} } split //, do { local $/; <$file> };
my @followers;
push @{ $followers[ $text[ $_ - 1 ] ] }, $text[$_] for 1 .. $#text;

print qq({"ganlm": 1}\n);

my $windows = [];
while (my $line = <STDIN>) {
    my $message = $json->decode($line);
    if ($message->{windows}) { $windows = $message->{windows}; next }
    srand($message->{seed} % 4294967296);
    my @answers;
    for my $request (@{ $message->{draw} }) {
        my ($window, $length, $n) = @$request;
        my $from = $length ? $followers[ $windows->[$window][ $length - 1 ] ] : \@text;
        my $size = @$from;
        push @answers, '[' . join(',', map { $from->[ rand $size ] } 1 .. $n) . ']';
    }
    print qq({"id": $message->{id}, "drawn": [), join(',', @answers), "]}\n";
}
