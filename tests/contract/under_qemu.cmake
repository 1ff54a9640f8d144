# What of the contract is not run under QEMU 7.2 in user mode, and why. Of each reason that is QEMU's own a test was
# seen to fail on the C library's heap as well: the programs by hand with CONTRACT_MODE=system.

set(CONTRACT_LEFT_OUT
  # It refuses set_robust_list, by which we are told the end of a thread, whose memory others may then take over.
  BoundHeaps.OutliveTheirThread Tags.AddUp Tags.ATrimTakesAllThatEndedThreadsFreed
  Memory.SixteenThreadsRaceForTheLastMebibyte
  # A child of a process that had other threads ends where it makes one.
  Fork.ThreadsInTheChild Idle.ForkAndSignalsReachOnlyTheProgram MemoryPosix.AForkedChildKeepsTheLimit
  Copies.ForksAreKnownOfBeforeTheFirstBlock
  # Where the main thread ends before others the process ends by SIGSEGV.
  Exit.AsTheLastThreadReturns Exit.RunsHandlersAndDestructorsOnTheHeap Tls.ThreadLocalObjectsOfTheMainThread
  # The same where threads end while another loads a library.
  Loader.PluginLoadedWhileThreadsComeAndGo
  # It keeps some memory of each thread that has ended, of code that was unloaded, and of pages far apart.
  Threads.TenThousandInTurnDoNotGrow Threads.MemoryOfTheDeadIsReused Tls.TeardownDoesNotLeak
  Loader.PluginLoadedAThousandTimes Loader.LibraryWithItsOwnHeapIsLoadedAgainAndAgain Alignment.CostsNoMemory*
  # Each page of a mapping is work for it, and of so many copies not all find place as they should.
  LimitsOnce.NothingFreeBehind Copies.ManyKnowEachOther
  # Pages that were moved away are not zero there, so we move none (docs/design/arm64.md).
  Realloc.OfALargeBlockDoesNotCopy
  # Of a limit to address space its own memory takes a part.
  LimitsOnce.ALittleLongerThanWhatWasFreed
  # There is no limit to data, and at the kernel's last mapping it ends itself.
  */Limits.DataSegment/* LimitsOnce.NoMappingsLeft
  # It does nothing at madvise, so that the kernel is not asked for huge pages.
  HugePages.*)

set(CONTRACT_PROGRAMS_LEFT_OUT
  credentials credentials_core  # a thread of its own keeps the credentials that were
  locked                        # its own memory is more than may be locked
  raised)                       # nor is there ptrace

# Linked with libreheap.a alone, not preloaded.
set(CONTRACT_LINKED_ONLY
  # Zig's programs bring operators new and delete of their own, which come before a preloaded library's.
  new tokens replaced_single replaced_array replaced_aligned
  # To save time. Of the hardened build's memory QEMU's own is too large a part for idle and threads.
  copies exit foreign fork idle options threads tls)

# A child may have no helper there (see above): without decay it needs none.
set(CONTRACT_WITHOUT_HELPER fork tokens)

list(JOIN CONTRACT_LEFT_OUT ":" left_out)
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
# Not its default processor, `max`, for which glibc's memcpy faults on memory that is there.
set(CONTRACT_ENVIRONMENT "CONTRACT_EMULATOR=${emulator}" QEMU_CPU=cortex-a57 "GTEST_FILTER=-${left_out}")
