// All heaps at once (programs/stress.cpp), on each of the layers, from the start and brought in late.

#include "driver.h"

namespace heap_stress {
namespace {

std::wstring duration() { return setting(L"HEAP_STRESS_SECONDS", L"0.5"); }
std::wstring late() { return L" late=" + library_path(); }

void run_with(const wchar_t* layers, unsigned threads) {
  const Variable chosen(L"REHEAP_LAYERS", layers);
  expect_end(launched() + stress(threads, duration(), layers));
}

void come_late_with(const wchar_t* layers, unsigned threads) {
  const Variable chosen(L"REHEAP_LAYERS", layers);
  expect_end(stress(threads, duration(), layers) + late());
}

TEST(Stress, Plain) { expect_end(stress(16, L"0.5", L"plain")); }
TEST(Stress, BothIn2Threads) { run_with(L"both", 2); }
TEST(Stress, BothIn16Threads) { run_with(L"both", 16); }
TEST(Stress, BothIn32Threads) { run_with(L"both", 32); }
TEST(Stress, HeapAlone) { run_with(L"heap", 16); }
TEST(Stress, CrtAlone) { run_with(L"crt", 16); }
TEST(Stress, BothComeLate) { come_late_with(L"both", 16); }
TEST(Stress, HeapComesLate) { come_late_with(L"heap", 16); }
TEST(Stress, CrtComesLate) { come_late_with(L"crt", 16); }

// The controls: what is broken on purpose is seen.
void expect_seen(const wchar_t* way, const char* said) {
  const Ended ended = start(launched() + stress(4, L"60", L"both") + L" break=" + way);
  EXPECT_EQ(ended.code, 1u);
  EXPECT_NE(ended.errors.find(said), std::string::npos) << ended.errors;
}

TEST(StressControl, ByteOfABlockThatIsHandedOver) { expect_seen(L"contents", "changed before it was"); }
TEST(StressControl, ByteOfAZeroedBlock) { expect_seen(L"zero", "is not zero"); }
TEST(StressControl, Size) { expect_seen(L"size", "has another size"); }
TEST(StressControl, ByteOfAResizedBlock) { expect_seen(L"resize", "changed while it was resized"); }
TEST(StressControl, ByteInAHeapThatIsDestroyed) { expect_seen(L"destroyed", "changed before its heap was destroyed"); }

}  // namespace
}  // namespace heap_stress
