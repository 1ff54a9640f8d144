# What records.py does.
require "json"

written = counts = nil
ARGV[1].to_i.times do
  records = File.readlines(ARGV[0]).map { |line| JSON.parse(line) }
  groups = Hash.new { |hash, tag| hash[tag] = [] }
  records.each do |record|
    record["text"] = record["text"].gsub(/\b(\w+)(a|or)\b/, '\1-\2')
    record["tags"].each { |tag| groups[tag] << record }
  end
  counts = Hash.new(0)
  records.each { |record| record["text"].split.each { |word| counts[word] += 1 } }
  groups.each_value { |group| group.sort_by! { |record| [record["name"], record["id"]] } }
  written = JSON.generate(groups.sort.map { |tag, group| [tag, group.size, group[0]["name"]] })
end
puts "#{written.size} #{counts.size}"
