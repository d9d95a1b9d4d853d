#pragma once
#include <string>

namespace poplar {

/// What a file of codelets holds. `Auto` goes by the file's ending.
enum class CodeletFileType {
  PreprocessedAsmSource,
  AsmSource,
  CSource,
  CppSource,
  IrSource,
  Object,
  Auto
};

/// The type by the ending of a file's name; Auto where the ending is not known.
CodeletFileType getCodeletFileType(const char* path);
std::string getExtensionFromFileType(CodeletFileType type);
std::string getLanguageOption(CodeletFileType type);

}  // namespace poplar
