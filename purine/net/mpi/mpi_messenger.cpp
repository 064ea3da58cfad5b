// The one file that calls MPI: by its C interface, of version 3.1.
#include "purine/net/transport/messenger.h"

// The C++ bindings that some versions still bring are not wanted.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/net/transport/tcp_connections.h"

namespace purine::net {
namespace {

std::string text_of(int result) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int result, const char* call) {
  if (result != MPI_SUCCESS) throw Error("mpi", std::string(call) + ": " + text_of(result));
}

/// Has Open MPI send a chunk over TCP without asking for it. By default it asks for messages of more than 64
/// KiB, and the answer waits in the queue of what is sent the other way: two ranks that send to each other
/// then reach about half of what the link carries. Chunks always have their place at the receiver. What the
/// user has set stays.
void set_eager_limit(std::size_t chunk_bytes) {
  const std::string bytes = std::to_string(chunk_bytes + 1024);  // some of which are headers
  for (const char* variable : {"OMPI_MCA_btl_tcp_eager_limit", "OMPI_MCA_btl_tcp_max_send_size"}) {
    ::setenv(variable, bytes.c_str(), 0);
  }
}

/// MPI between its initialisation and its end, unless the program does both itself.
class Library {
 public:
  explicit Library(std::size_t chunk_bytes) {
    int initialized = 0;
    int finalized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    check(MPI_Finalized(&finalized), "MPI_Finalized");
    if (finalized != 0) {
      throw Error("mpi", "MPI has ended in this process, and cannot begin again",
                  "connect the process once, and keep the endpoint");
    }
    int level = MPI_THREAD_SINGLE;
    if (initialized != 0) {
      check(MPI_Query_thread(&level), "MPI_Query_thread");
      if (level < MPI_THREAD_MULTIPLE) {
        throw Error("mpi", "the program initialised MPI for calls by one thread only",
                    "call MPI_Init_thread with MPI_THREAD_MULTIPLE, or leave it to Purine");
      }
    } else {
      set_eager_limit(chunk_bytes);
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
      ours_ = true;
      if (level < MPI_THREAD_FUNNELED) {
        throw Error("mpi", "this MPI does not support programs with several threads");
      }
    }
  }

  void finish() const {
    if (ours_) check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  bool ours_ = false;
};

class MpiMessenger final : public Messenger {
 public:
  explicit MpiMessenger(std::size_t chunk_bytes) : library_(chunk_bytes) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &words_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &chunks_), "MPI_Comm_dup");
    for (const MPI_Comm communicator : {words_, chunks_}) {
      check(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    check(MPI_Comm_rank(words_, &rank_), "MPI_Comm_rank");
    int size = 0;
    check(MPI_Comm_size(words_, &size), "MPI_Comm_size");
    learn_hosts(size);
    int* largest_tag = nullptr;
    int found = 0;
    check(MPI_Comm_get_attr(chunks_, MPI_TAG_UB, &largest_tag, &found), "MPI_Comm_get_attr");
    if (found != 0) slots_ = static_cast<std::uint32_t>(*largest_tag) + 1;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) post_arrival(i);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const override { return hosts_.at(static_cast<std::size_t>(rank)); }
  std::uint32_t slots() const override { return slots_; }

  void send_words(int peer, std::string words) override {
    PURINE_CHECK(words.size() <= longest_words);
    Operation operation{Kind::words, peer, 0, std::make_unique<std::string>(std::move(words))};
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(operation.words->data(), static_cast<int>(operation.words->size()), MPI_BYTE, peer, 0,
                    words_, &request),
          "MPI_Isend");
    add(request, std::move(operation));
  }

  void send_chunk(int peer, std::uint32_t slot, const std::byte* memory, std::size_t bytes,
                  std::uint64_t ticket) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Isend(memory, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(slot), chunks_, &request),
        "MPI_Isend");
    add(request, {Kind::send, peer, ticket, nullptr});
  }

  void receive_chunk(int peer, std::uint32_t slot, std::byte* memory, std::size_t bytes,
                     std::uint64_t ticket) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Irecv(memory, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(slot), chunks_, &request),
        "MPI_Irecv");
    add(request, {Kind::receive, peer, ticket, nullptr});
  }

  void withdraw(std::uint64_t ticket) override {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (operations_[i].kind == Kind::receive && operations_[i].ticket == ticket) {
        check(MPI_Cancel(&requests_[i]), "MPI_Cancel");
      }
    }
  }

  void bound_unsent(std::size_t bytes) override { bound_unsent_bytes(bytes); }

  bool sending() const override { return sends_ > 0; }

  bool poll(MessengerListener& listener) override {
    const bool words = poll_words(listener);
    return poll_operations(listener) || words;
  }

  void finish() override {
    for (Arrival& arrival : arrivals_) {
      check(MPI_Cancel(&arrival.request), "MPI_Cancel");
      check(MPI_Wait(&arrival.request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    check(MPI_Comm_free(&words_), "MPI_Comm_free");
    check(MPI_Comm_free(&chunks_), "MPI_Comm_free");
    library_.finish();
  }

 private:
  enum class Kind : std::uint8_t { words, send, receive };
  struct Operation {
    Kind kind;
    int peer;
    std::uint64_t ticket;
    std::unique_ptr<std::string> words;  // at an address that stays while they are sent
  };
  struct Arrival {
    MPI_Request request = MPI_REQUEST_NULL;
    std::array<char, longest_words> words{};
  };

  void learn_hosts(int size) {
    using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
    Name name{};
    int length = 0;
    check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    std::vector<Name> names(static_cast<std::size_t>(size));
    check(MPI_Allgather(name.data(), static_cast<int>(name.size()), MPI_CHAR, names.data(),
                        static_cast<int>(name.size()), MPI_CHAR, words_),
          "MPI_Allgather");
    for (const Name& each : names) hosts_.emplace_back(each.data());
  }

  void post_arrival(std::size_t index) {
    Arrival& arrival = arrivals_[index];
    check(MPI_Irecv(arrival.words.data(), static_cast<int>(longest_words), MPI_BYTE, MPI_ANY_SOURCE, 0,
                    words_, &arrival.request),
          "MPI_Irecv");
  }

  void add(MPI_Request request, Operation operation) {
    if (operation.kind != Kind::receive) ++sends_;
    requests_.push_back(request);
    operations_.push_back(std::move(operation));
  }

  /// Receives of words match in the order in which they were posted, so that taking them in this order keeps
  /// that of each sender.
  bool poll_words(MessengerListener& listener) {
    bool any = false;
    while (true) {
      Arrival& arrival = arrivals_[next_arrival_];
      int arrived = 0;
      MPI_Status status;
      check(MPI_Test(&arrival.request, &arrived, &status), "MPI_Test");
      if (arrived == 0) return any;
      any = true;
      int length = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
      const std::string words(arrival.words.data(), static_cast<std::size_t>(length));
      post_arrival(next_arrival_);
      next_arrival_ = (next_arrival_ + 1) % arrivals_.size();
      listener.words_arrived(status.MPI_SOURCE, words);
    }
  }

  bool poll_operations(MessengerListener& listener) {
    if (requests_.empty()) return false;
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                    indices_.data(), statuses_.data());
    if (result != MPI_ERR_IN_STATUS) check(result, "MPI_Testsome");
    if (count == MPI_UNDEFINED || count == 0) return false;

    ended_.clear();
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]);
      const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      int withdrawn = 0;
      const int error = result == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS;
      if (error == MPI_SUCCESS && operations_[index].kind == Kind::receive) {
        check(MPI_Test_cancelled(&status, &withdrawn), "MPI_Test_cancelled");
      }
      ended_.push_back({std::move(operations_[index]), error, withdrawn != 0});
      if (ended_.back().operation.kind != Kind::receive) --sends_;
    }
    remove_ended();
    // The listener may begin operations, so that it is called only now. `ended_` is not touched by those.
    for (const Ended& ended : ended_) tell(ended, listener);
    return true;
  }

  struct Ended {
    Operation operation;
    int error;
    bool withdrawn;
  };

  void remove_ended() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      if (i != kept) {
        requests_[kept] = requests_[i];
        operations_[kept] = std::move(operations_[i]);
      }
      ++kept;
    }
    requests_.resize(kept);
    operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(kept), operations_.end());
  }

  static void tell(const Ended& ended, MessengerListener& listener) {
    if (ended.error != MPI_SUCCESS) {
      listener.connection_failed(ended.operation.peer, text_of(ended.error));
    } else if (ended.operation.kind == Kind::send) {
      listener.chunk_sent(ended.operation.ticket);
    } else if (ended.operation.kind == Kind::receive) {
      if (ended.withdrawn) {
        listener.chunk_withdrawn(ended.operation.ticket);
      } else {
        listener.chunk_received(ended.operation.peer, ended.operation.ticket);
      }
    }
  }

  Library library_;
  MPI_Comm words_ = MPI_COMM_NULL;
  MPI_Comm chunks_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<std::string> hosts_;
  std::uint32_t slots_ = 32768;  // what every MPI has

  std::array<Arrival, 32> arrivals_;
  std::size_t next_arrival_ = 0;

  std::vector<MPI_Request> requests_;
  std::vector<Operation> operations_;  // of the request with the same index
  std::size_t sends_ = 0;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<Ended> ended_;
};

}  // namespace

std::unique_ptr<Messenger> start_mpi(std::size_t chunk_bytes) {
  return std::make_unique<MpiMessenger>(chunk_bytes);
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string version(text.data(), static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace purine::net
