import { ask, content, open } from './embedded-network.js'

/** Makes one deal in the network of the folder given, and tells when it begins and what was made. */
const [folder = '', reference = ''] = process.argv.slice(2)
const network = await open({ teardown: () => undefined } as never, folder)
process.stdout.write('ready\n')
const { dealCid } = await network.deal(ask(reference, { file: content(reference, 100_000) }))
process.stdout.write(`${dealCid}\n`)
setInterval(() => undefined, 1000)
