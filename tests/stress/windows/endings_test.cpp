// Every way to end a process while eight threads use its heaps: it ends, with the right code, and blocks can be made
// and freed to the last DLL's farewell. Not tried without reheap: Wine's heap hangs when a thread has ended inside it.

#include "driver.h"

namespace heap_stress {
namespace {

struct Ending {
  const wchar_t* way;
  const char* said;
  bool may_be_silent = false;
};

std::ostream& operator<<(std::ostream& out, const Ending& ending) {
  return out << testing::PrintToString(std::wstring(ending.way));
}

class Endings : public testing::TestWithParam<Ending> {};

std::wstring line_for(const std::wstring& way) {
  return launched() + program(L"endings.exe") + L" " + way + L" both " + launch_test::program_path(L"farewell.dll");
}

TEST_P(Endings, ComeSoonAndWithTheRightCode) {
  const std::wstring line = line_for(GetParam().way);
  const unsigned rounds = number(L"HEAP_STRESS_ENDINGS", 2);
  for (unsigned round = 0; round < rounds; ++round) {
    const Ended ended = start(line);
    ASSERT_EQ(ended.code, 7u) << "in round " << round << ": " << ended.output << ended.errors;
    const bool is_silent = GetParam().may_be_silent && ended.output.empty();
    ASSERT_TRUE(is_silent || ended.output == GetParam().said) << "in round " << round << ": " << ended.output;
    ASSERT_EQ(ended.errors, "") << "in round " << round;
  }
}

// Wine tells no DLL that the process ends with its last thread, unless that is our helper.
constexpr Ending kEndings[] = {{L"return", "detached\n"},
                               {L"exit_process", "detached\n"},
                               {L"exit_in_a_thread", "detached\n"},
                               {L"exit_process_in_a_thread", "detached\n"},
                               {L"terminate", ""},
                               {L"terminate_in_a_thread", ""},
                               {L"with_the_last_thread", "detached\n", true},
                               {L"exit_in_the_farewell", "detached\n"},
                               {L"terminate_in_the_farewell", "detached\n"},
                               {L"exit_in_an_unloaded_dll", "detached\n"},
                               {L"terminate_in_an_unloaded_dll", "detached\n"}};

INSTANTIATE_TEST_SUITE_P(Ways, Endings, testing::ValuesIn(kEndings), [](const auto& parameter) {
  const std::wstring way = parameter.param.way;
  return std::string(way.begin(), way.end());
});

}  // namespace
}  // namespace heap_stress
