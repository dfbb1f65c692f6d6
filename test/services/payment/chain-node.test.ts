import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { encodeErrorResult, parseAbi } from 'viem'
import { openNode } from '../../../src/services/payment/chain/node.js'
import { listen } from '../../support/server/listen.js'

const CONTRACT = '0x00000000000000000000000000000000000000c1'
const TOKEN = '0x00000000000000000000000000000000000000c2'
const LOOKUP = parseAbi([
  'error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData)',
])

t.test('a contract cannot make the service ask an address (EIP-3668)', async (t) => {
  let asked = 0
  const named = createServer((_, response) => {
    asked++
    response.setHeader('content-type', 'application/json').end('{"data":"0x"}')
  })
  const url = await listen(named)
  const data = encodeErrorResult({
    abi: LOOKUP,
    errorName: 'OffchainLookup',
    args: [CONTRACT, [`${url}/{sender}/{data}.json`], '0x01', '0x12345678', '0x02'],
  })
  const methods: string[] = []
  const node = createServer(async (request, response) => {
    const { id, method } = (await json(request)) as { id: number; method: string }
    methods.push(method)
    const error = { code: 3, message: 'execution reverted', data }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  })
  const options = { url: await listen(node), contract: CONTRACT, token: TOKEN, timeoutMs: 10_000 }
  const stop = new AbortController()
  t.teardown(() => {
    stop.abort()
    for (const server of [named, node]) {
      server.close()
      server.closeAllConnections()
    }
  })
  const client = await openNode(options, [], stop.signal)
  await t.rejects(client.locked('w_cid', 1), { message: /eth_call/ })
  t.same(methods, ['eth_call'])
  t.equal(asked, 0)
})
