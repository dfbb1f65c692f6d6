// The parts of hash-wasm that dealgate uses. The whole package contains 20 other hashes.
const { createXXHash64 } = require('hash-wasm/dist/xxhash64.umd.min.js')
const { createXXHash3 } = require('hash-wasm/dist/xxhash3.umd.min.js')
const { createXXHash128 } = require('hash-wasm/dist/xxhash128.umd.min.js')

module.exports = { createXXHash64, createXXHash3, createXXHash128 }
