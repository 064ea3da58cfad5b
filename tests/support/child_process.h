// Work done in a process of its own, to be limited, stripped of rights or killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "purine/core/error.h"

namespace purine::test {

/// A forked child that runs a function and ends; killed and waited for when the object goes.
class ChildProcess {
 public:
  template <typename Function>
  explicit ChildProcess(Function&& function) {
    id_ = ::fork();
    PURINE_CHECK(id_ >= 0);
    if (id_ != 0) return;
    try {
      function();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill(); }

  /// Ends the child with SIGKILL, wherever it is.
  void kill() {
    if (id_ > 0) ::kill(id_, SIGKILL);
    wait();
  }
  void wait() {
    if (id_ > 0) ::waitpid(std::exchange(id_, -1), nullptr, 0);
  }

 private:
  pid_t id_ = -1;
};

/// Runs a function that returns a text in a child and gives back the text; of an Error, what it says.
template <typename Function>
std::string text_from_child(Function&& function) {
  int ends[2] = {-1, -1};
  PURINE_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  ChildProcess child([&] {
    std::string text;
    try {
      text = function();
    } catch (const Error& error) {
      text = error.what();
    }
    while (!text.empty()) {
      const ssize_t count = ::write(ends[1], text.data(), text.size());
      if (count <= 0) break;
      text.erase(0, static_cast<std::size_t>(count));
    }
  });
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  child.wait();
  return text;
}

/// In a child: from now on a file can't grow past this many bytes, as on a full disk. RLIM_INFINITY ends it.
inline void limit_files(rlim_t bytes) {
  rlimit limit{};
  PURINE_CHECK(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  limit.rlim_cur = bytes;
  ::signal(SIGXFSZ, SIG_IGN);
  PURINE_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

}  // namespace purine::test
