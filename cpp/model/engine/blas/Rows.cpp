#include "engine/blas/Rows.hpp"

#include <string>

#include "engine/Errors.hpp"
#include "engine/blas/Arithmetic.hpp"

namespace ipujax::engine::blas {

const IntegerRows& rowsOf(ElementType type) {
  if (!isInteger(type))
    throw type_error(std::string("[blas] needs integers; got ") + nameOf(type) +
                     ". Cast the operands.");
  return IPUJAX_PICK(integerRows)(type);
}

}  // namespace ipujax::engine::blas
