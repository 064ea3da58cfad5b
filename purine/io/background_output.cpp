#include "purine/io/background_output.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace purine::io {

class BackgroundOutput::State {
 public:
  explicit State(std::FILE* file) : output_(file) {}

  void add(std::string_view text, const std::stop_token& stop) {
    constexpr std::size_t limit = 1'000'000;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return waiting_.size() < limit; });
    waiting_ += text;
    changed_.notify_all();
  }

  /// The errno of what failed.
  int flush(const std::stop_token& stop) {
    constexpr std::chrono::seconds patience(1);
    std::unique_lock lock(mutex_);
    const auto is_written = [&] { return waiting_.empty() && !is_writing_; };
    if (!changed_.wait(lock, stop, is_written)) changed_.wait_for(lock, patience, is_written);
    return error_number_;
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::string text = std::exchange(waiting_, {});
      is_writing_ = true;
      changed_.notify_all();
      lock.unlock();
      output_.write(text);
      lock.lock();
      is_writing_ = false;
      error_number_ = output_.error_number();
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string waiting_;
  bool is_writing_ = false;
  bool is_ended_ = false;
  int error_number_ = 0;
  TextOutput output_;  // the thread's
};

BackgroundOutput::BackgroundOutput(std::FILE* file, std::stop_token stop)
    : TextOutput(file), stop_(std::move(stop)), state_(std::make_shared<State>(file)) {
  std::thread([state = state_] { state->work(); }).detach();
}

BackgroundOutput::~BackgroundOutput() {
  BackgroundOutput::flush();
  state_->end();
}

void BackgroundOutput::write(std::string_view text) {
  state_->add(text, stop_);
}

void BackgroundOutput::flush() {
  set_error_number(state_->flush(stop_));
}

}  // namespace purine::io
