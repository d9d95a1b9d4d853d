#pragma once

/// Run-time choice between the copies of a `*.simd.cpp` file. Such a file is compiled once for each
/// instruction set with IPUJAX_ISA defined, puts everything in `IPUJAX_ISA_NAMESPACE`, and exports
/// a table of functions; a plain .cpp picks one with IPUJAX_PICK(namespace::table).
#ifdef IPUJAX_ISA
#define IPUJAX_ISA_NAMESPACE IPUJAX_ISA
#endif

namespace ipujax::engine {

enum class Isa { kBaseline, kAvx2, kAvx512 };

/// The best instruction set this CPU has; IPUJAX_MAX_ISA=baseline|avx2|avx512 lowers it.
Isa isa();

}  // namespace ipujax::engine

#ifdef IPUJAX_X86
#define IPUJAX_DECLARE_SIMD(declaration) \
  namespace baseline {                   \
  declaration;                           \
  }                                      \
  namespace avx2 {                       \
  declaration;                           \
  }                                      \
  namespace avx512 {                     \
  declaration;                           \
  }
#define IPUJAX_PICK(name)                                                   \
  (::ipujax::engine::isa() == ::ipujax::engine::Isa::kAvx512 ? avx512::name \
   : ::ipujax::engine::isa() == ::ipujax::engine::Isa::kAvx2 ? avx2::name   \
                                                             : baseline::name)
#else
#define IPUJAX_DECLARE_SIMD(declaration) \
  namespace baseline {                   \
  declaration;                           \
  }
#define IPUJAX_PICK(name) (baseline::name)
#endif
