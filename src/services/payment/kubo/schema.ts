import { pinSchema } from '../../network/kubo/pins.js'

/** `node` is the peer ID of the Kubo node that has a content, if one has it. `pins` are those that are made there. */
export const kuboSchema = `
  ALTER TABLE contents ADD COLUMN node TEXT;
  ${pinSchema}
`
