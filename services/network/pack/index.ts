export { createReadFromCar, digestsOfCar } from './car/car-file.js'
export { CarReader, type OpenCar } from './car/car-reader.js'
export { MAX_HEAD_BYTES, MAX_HEADER_BYTES, parseHeader, parseSection } from './car/car-sections.js'
export { type CarSource, carOf } from './car/car-stream.js'
export { createCommit } from './commit.js'
export { dagNames, dagNamesInOrder } from './dag/dag-names.js'
export { type Resolved, resolvePath } from './dag/dag-tree.js'
export { entryOf } from './dag/directory.js'
export {
  type BlockSource,
  MAX_BLOCK_BYTES,
  readNode,
  verifiedBlock,
} from './dag/unixfs.js'
export { contentOf, verifyLeaves } from './dag/verify-leaves.js'
export { pack, packContent } from './pack.js'
export { PackThread } from './pack-thread.js'
