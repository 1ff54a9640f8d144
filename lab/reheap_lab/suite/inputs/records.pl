# What records.py does.
use strict;
use warnings;
use JSON::PP;

my ($written, %counts);
for (1 .. $ARGV[1]) {
    my $json = JSON::PP->new->canonical;
    open my $file, '<', $ARGV[0] or die "$ARGV[0]: $!";
    my @records = map { $json->decode($_) } <$file>;
    my %groups;
    %counts = ();
    for my $record (@records) {
        $record->{text} =~ s/\b(\w+)(a|or)\b/$1-$2/g;
        push @{$groups{$_}}, $record for @{$record->{tags}};
        $counts{$_}++ for split ' ', $record->{text};
    }
    for my $group (values %groups) {
        @$group = sort { $a->{name} cmp $b->{name} || $a->{id} <=> $b->{id} } @$group;
    }
    $written = $json->encode([map { [$_, scalar @{$groups{$_}}, $groups{$_}[0]{name}] } sort keys %groups]);
}
print length($written), ' ', scalar(keys %counts), "\n";
