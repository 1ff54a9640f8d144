// Headers that make a compiler work: instantiated, so that it cannot skip them.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <ranges>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

using Value = std::variant<int, double, std::string, std::vector<int>, std::map<std::string, double>>;

template <int N> struct Layer : Layer<N - 1> {
  std::unordered_map<std::string, std::array<char, N>> table;
  Value value = N;
};
template <> struct Layer<0> {};

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  nlohmann::ordered_json json = words;
  Layer<30> layers;
  auto lengths = words | std::views::filter([](const auto& word) { return word.starts_with("x"); }) |
                 std::views::transform([](const auto& word) { return word.size(); });
  for (auto length : lengths) json.push_back(length);
  layers.table["x"] = {};
  std::visit([](const auto& value) { (void)value; }, layers.value);
  std::cout << json.dump() << std::endl;
}
