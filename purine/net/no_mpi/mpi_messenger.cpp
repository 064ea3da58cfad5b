// Takes the place of MPI in a build without it.
#include "purine/core/error.h"
#include "purine/net/transport/messenger.h"

namespace purine::net {

std::unique_ptr<Messenger> start_mpi() {
  throw Error("mpi", "this build of Purine has no MPI",
              "install Open MPI or MPICH with its headers, and build again");
}

}  // namespace purine::net
