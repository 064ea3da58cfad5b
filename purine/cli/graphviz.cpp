#include "purine/cli/graphviz.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "purine/core/error.h"

extern char** environ;

namespace purine::cli {
namespace {

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TemporaryFile make_temporary_file() {
  TemporaryFile file(std::tmpfile(), &std::fclose);
  if (!file) throw Error("graph", std::string("no temporary file can be made: ") + std::strerror(errno));
  return file;
}

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::string draw_svg(const std::string& dot) {
  // Files in place of pipes: nobody waits for somebody who waits.
  const TemporaryFile input = make_temporary_file();
  const TemporaryFile output = make_temporary_file();
  if (std::fwrite(dot.data(), 1, dot.size(), input.get()) != dot.size() || std::fflush(input.get()) != 0) {
    throw Error("graph", std::string("the temporary file cannot be written: ") + std::strerror(errno));
  }
  std::rewind(input.get());

  SpawnActions actions;
  ::posix_spawn_file_actions_adddup2(actions.get(), ::fileno(input.get()), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), ::fileno(output.get()), STDOUT_FILENO);
  std::string program = "dot";
  std::string format = "-Tsvg";
  char* arguments[] = {program.data(), format.data(), nullptr};
  pid_t process = -1;
  if (const int error = ::posix_spawnp(&process, "dot", actions.get(), nullptr, arguments, environ);
      error != 0) {
    throw Error("graph", std::string("graphviz's command `dot` cannot be run: ") + std::strerror(error),
                "install graphviz, or take --format dot");
  }
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error("graph", "graphviz's command `dot` failed", "take --format dot and look at its input");
  }
  std::string svg;
  std::rewind(output.get());
  char buffer[1 << 16];
  for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof(buffer), output.get())) > 0;) {
    svg.append(buffer, count);
  }
  return svg;
}

double svg_width(const std::string& svg) {
  constexpr std::string_view before = "<svg width=\"";
  const std::size_t found = svg.find(before);
  return found == std::string::npos ? 0 : std::strtod(svg.c_str() + found + before.size(), nullptr);
}

}  // namespace purine::cli
