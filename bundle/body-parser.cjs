// In the place of body-parser, which Express loads and nothing here calls: src/http/body reads bodies.
module.exports = {}
