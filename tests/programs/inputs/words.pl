# Hashes, regular expressions, sorting, closures, formats: much of what perl takes memory for.
use strict;
use warnings;

my $state = 12345;
sub number { $state = ($state * 1103515245 + 12345) % 2147483648; return int($state / 65536) % $_[0]; }

my (%count, @lines);
for my $line (1 .. 20000) {
    my $text = join ' ', map { join '', map { chr(97 + number(26)) } 1 .. 1 + number(9) } 1 .. 1 + number(12);
    push @lines, $text;
    $count{$_}++ for split / /, $text;
}
my @often = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 199];
print "$_ $count{$_}\n" for @often;

my %tree;
for my $word (keys %count) {
    my $node = \%tree;
    $node = $node->{$_} //= {} for split //, $word;
    $node->{end} = 1;
}
sub depth { my $node = shift; my $most = 0; for (grep { ref } values %$node) { my $d = depth($_); $most = $d if $d > $most } return $most + 1; }
print scalar(keys %count), " words, depth ", depth(\%tree), "\n";

my $all = join "\n", @lines;
my $changed = () = $all =~ /\b(\w)\w*\1\b/g;
$all =~ s/(\w+) (\w+)/$2 . ' ' . reverse $1/ge;
print "$changed ", length($all), " ", unpack('%32C*', $all), "\n";
my @subs = map { my $n = $_; sub { $n * shift } } 1 .. 5000;
my $sum = 0; $sum += $subs[$_]->($_) for 0 .. $#subs;
printf "%d %s\n", $sum, join ',', map { sprintf '%x', $_ } unpack 'N*', pack 'N*', map { number(1 << 15) } 1 .. 2000;
local $SIG{CHLD} = 'DEFAULT';
for my $child (1 .. 3) {
    my $pid = open(my $from, '-|') // die "fork: $!";
    if (!$pid) { my @more = map { "$child-$_" x 3 } 1 .. 2000; print scalar(@more), " $more[-1]\n"; exit $child; }
    print <$from>; close $from; print $? >> 8, "\n";
}
