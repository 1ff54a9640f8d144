#include "entry/limit_option.h"

namespace rh::limit_option {

namespace {

using limit::Bound;

constexpr uint64_t kLeast = limit::kLeast;

bool parse_bound(const char* text, Bound* bound, const char** end) {
  if (bound->kind != Bound::Kind::none || !parse_number(text, &bound->value, end)) return false;
  if (**end == '%') {
    ++*end;
    bound->kind = Bound::Kind::percent;
    return bound->value >= 1 && bound->value <= 100;
  }
  bound->kind = Bound::Kind::bytes;
  return parse_size(text, &bound->value, end) && bound->value >= kLeast;
}

bool take_word(const char* word, const char** text) {
  const char* rest = *text;
  while (*word != 0 && *rest == *word) ++rest, ++word;
  if (*word != 0) return false;
  *text = rest;
  return true;
}

bool parse_part(const char** text, limit::Rule* rule) {
  bool* flag = nullptr;
  if (take_word("auto", text))
    flag = &rule->automatic;
  else if (take_word("end", text))
    flag = &rule->ends;
  if (flag == nullptr) {
    Bound* bound = take_word("soft:", text) ? &rule->soft : &rule->hard;
    if (bound == &rule->hard) take_word("hard:", text);
    return parse_bound(*text, bound, text);
  }
  bool again = *flag;
  *flag = true;
  return !again;
}

// What contradicts itself is refused. Of two kinds nobody knows yet which is more.
bool makes_sense(const limit::Rule& rule) {
  bool has_soft = rule.soft.kind != Bound::Kind::none, has_hard = rule.hard.kind != Bound::Kind::none;
  if (rule.automatic) return !has_soft && !has_hard;
  if (has_soft && rule.soft.kind == rule.hard.kind && rule.soft.value > rule.hard.value) return false;
  return has_hard || (has_soft && !rule.ends);
}

}  // namespace

bool parse(const char* text, limit::Rule* rule) {
  *rule = {};
  if (same_text(text, "off")) return true;
  for (;; ++text) {
    if (!parse_part(&text, rule)) return false;
    if (*text == 0) return makes_sense(*rule);
    if (*text != ',') return false;
  }
}

static void describe(const Bound& bound, const char* name, bool first, Text& text) {
  if (bound.kind == Bound::Kind::none) return;
  if (!first) text << ',';
  text << name;
  text.decimal(bound.value);
  if (bound.kind == Bound::Kind::percent) text << '%';
}

void describe(const limit::Rule& rule, Text& text) {
  bool has_soft = rule.soft.kind != Bound::Kind::none;
  if (rule.automatic)
    text << "auto";
  else if (!has_soft && rule.hard.kind == Bound::Kind::none)
    text << "off";
  describe(rule.soft, "soft:", true, text);
  describe(rule.hard, "hard:", !has_soft, text);
  if (rule.ends) text << ",end";
  text << '\0';
}

}  // namespace rh::limit_option
