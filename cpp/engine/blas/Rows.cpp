#include "engine/blas/Rows.hpp"

#include <string>

#include "engine/blas/Arithmetic.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::engine::blas {

const IntegerRows& rowsOf(ElementType type) {
  if (!isInteger(type))
    throw poplar::type_error(std::string("[blas] needs integers; got ") + nameOf(type) +
                             ". Cast the operands.");
  return IPUJAX_PICK(integerRows)(type);
}

}  // namespace ipujax::engine::blas
