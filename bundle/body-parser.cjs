// In the place of body-parser, which Express loads and nothing here calls: src/request/body reads bodies.
module.exports = {}
