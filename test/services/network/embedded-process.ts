import { createCommit } from '../../../src/services/network/pack/index.js'
import { ask, content, open } from './embedded-network.js'

const commit = createCommit()

/** Makes one deal in the network of the folder given, tells when it begins and what was made, and waits. */
const [folder = '', reference = ''] = process.argv.slice(2)
const network = await open({ teardown: () => undefined }, folder, { commit })
process.stdout.write('ready\n')
const { dealCid } = await network.deal(ask(reference, { file: content(reference, 100_000) }))
process.stdout.write(`${dealCid}\n`)
setInterval(() => undefined, 1000)
