// Threads that serve the workers, and should not interrupt them.
#pragma once

namespace purine {

/// From now on the calling thread, when it wakes, leaves a core to the worker that runs there until the end
/// of that one's turn, some milliseconds at most; on a core that is free it runs at once. A thread that is
/// woken is otherwise preferred to one that runs, and a worker wakes those that start and move messages
/// between two operators: their work would hold up the next operator, rather than go on beside it.
/// `SCHED_BATCH` of Linux; where the system forbids it nothing changes.
void yield_to_workers() noexcept;

}  // namespace purine
