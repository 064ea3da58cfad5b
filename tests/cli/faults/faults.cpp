// Loaded into a process ahead of its own libraries (LD_PRELOAD), to have it fail when it is told by a signal.
#include <unistd.h>

#include <csignal>
#include <ctime>

namespace {

// Leaves with status 0, as a program does that calls exit somewhere.
void leave(int) {
  ::_exit(0);
}

// Makes the thread that trains slow: it does nothing for a while, as others go on.
void pause_for_a_while(int) {
  timespec left{5, 0};
  while (::nanosleep(&left, &left) != 0) {
  }
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

[[gnu::constructor]] void begin() {
  handle(SIGRTMIN, leave);
  handle(SIGRTMIN + 1, pause_for_a_while);
}

}  // namespace
