#include "purine/io/text_output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace purine::io {

void TextOutput::write(std::string_view text) {
  if (error_number_ != 0) return;
  if (std::fflush(file_) != 0) {
    error_number_ = errno;
    return;
  }
  // Not by the stream: it would keep what it couldn't write, and tell so again at the program's end.
  const int descriptor = ::fileno(file_);
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      error_number_ = errno;
      return;
    }
  }
}

int TextOutput::columns() const {
  winsize size{};
  if (::ioctl(::fileno(file_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool TextOutput::nobody_reads() const {
  return error_number_ == EPIPE || error_number_ == EIO || error_number_ == EBADF;
}

}  // namespace purine::io
