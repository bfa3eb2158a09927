#define PARAMETERS(type) type parameters
#define P(field) parameters.field
