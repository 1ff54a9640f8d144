// Who is at which desk.
#include "platform/desk.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "platform/fake/fake.h"

namespace rh {
namespace {

class Desks : public ::testing::Test {
 protected:
  Desks() {
    for (DeskHolder* holder : {&alone_[0], &several_[0], &several_[1]}) holder->store(other_);
  }
  ~Desks() override { fake::set_terminated(0); }

  const platform::ThreadToken other_ = 2, own_ = platform::thread_token();
  DeskHolder alone_[1], several_[2];
};

TEST_F(Desks, AreFreeAgainWhenTheirThreadsLeave) {
  alone_[0].store(0);
  for (int time = 0; time != 2; ++time) {
    AtDesk desk(alone_);
    EXPECT_TRUE(desk);
    EXPECT_EQ(alone_[0].load(), own_);
  }
  EXPECT_EQ(alone_[0].load(), 0u);
}

TEST_F(Desks, OfOthersAreNotWaitedForForEver) {
  EXPECT_FALSE(AtDesk(alone_));
  EXPECT_FALSE(AtDesk(several_));
  EXPECT_EQ(alone_[0].load(), other_);
}

TEST_F(Desks, OfTerminatedThreadsAreTaken) {
  fake::set_terminated(other_);
  EXPECT_TRUE(AtDesk(alone_));
  EXPECT_TRUE(AtDesk(several_));
}

TEST_F(Desks, OfThoseThatAreNotInTheChildAreFree) {
  several_[1].store(own_);
  leave_desks_of_others(alone_, own_);
  leave_desks_of_others(several_, own_);
  EXPECT_EQ(alone_[0].load(), 0u);
  EXPECT_EQ(several_[0].load(), 0u);
  EXPECT_EQ(several_[1].load(), own_);
}

TEST_F(Desks, WhoIsInterruptedAtOneHasAnother) {
  several_[1].store(0);
  AtDesk outer(several_);
  several_[0].store(0);
  AtDesk inner(several_);
  ASSERT_TRUE(outer);
  ASSERT_TRUE(inner);
  EXPECT_EQ(outer.number() + inner.number(), 1u);
}

// It has not ended, though the system may say so of who asks after itself.
TEST_F(Desks, WhoIsInterruptedAtTheOnlyOneDoesNotWait) {
  static int pauses = 0;
  fake::on_back_off([] { ++pauses; });
  fake::set_terminated(own_);
  alone_[0].store(own_);
  EXPECT_FALSE(AtDesk(alone_));
  EXPECT_EQ(alone_[0].load(), own_);
  EXPECT_EQ(pauses, 0);
  fake::on_back_off(nullptr);
}

TEST_F(Desks, WhoHasLeftAllOfThemHasOneAgain) {
  for (DeskHolder& holder : several_) holder.store(own_);
  EXPECT_TRUE(AtDesk(several_));
}

}  // namespace
}  // namespace rh
