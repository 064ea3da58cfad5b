// The TCP connections of this process, whoever has opened them.
#pragma once

#include <cstddef>

namespace purine::net {

/// From now on the system takes no more for each of them while it keeps so many bytes that have yet to be
/// sent: the rest stays with whoever writes, who can still send something else first. By default it takes
/// what its buffer holds, up to 4 MiB. Returns how many connections there are. Where the system has no such
/// option (`TCP_NOTSENT_LOWAT` of Linux) nothing changes.
int bound_unsent_bytes(std::size_t bytes);

}  // namespace purine::net
