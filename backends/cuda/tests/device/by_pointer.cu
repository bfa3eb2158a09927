#define PARAMETERS(type) const type* parameters
#define P(field) parameters->field
