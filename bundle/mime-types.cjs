// mime-types as Express uses it, loaded when Express answers: it makes tables of 2,500 types.
const load = () => require('mime-types/index.js')

module.exports = {
  charset: (...args) => load().charset(...args),
  contentType: (...args) => load().contentType(...args),
  extension: (...args) => load().extension(...args),
  lookup: (...args) => load().lookup(...args),
  get types() {
    return load().types
  },
}
