// Takes the place of MPI in a build without it.
#include "purine/core/error.h"
#include "purine/net/transport/messenger.h"

namespace purine::net {

std::unique_ptr<Messenger> start_mpi(std::size_t /*chunk_bytes*/) {
  throw Error("mpi", "this build of Purine has no MPI",
              "install Open MPI or MPICH with its headers, and build again");
}

std::string mpi_library() {
  return "none";
}

}  // namespace purine::net
