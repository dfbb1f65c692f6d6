import { pino } from 'pino'
import t from 'tap'
import { z } from 'zod'
import { defineCall } from '../../src/plugins/calls/define-call.js'
import { definePlugin } from '../../src/plugins/define-plugin.js'
import { startInProcess } from '../support/server/in-process.js'
import { signedRequest } from '../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

t.test('what is not implemented is no failure of the server', async (t) => {
  const lines: { msg: string; code?: string }[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const { endpoint } = await startInProcess(t, 'full', { identities: [keys], log })
  const send = (method: string, path: string, query = {}) => signedRequest(endpoint, keys, { method, path, query })
  t.equal((await send('PUT', '/bucket/k', { nonsense: '' })).status, 501)
  t.same(lines, [])
})

t.test('a plugin whose answers have members of like names is refused when the server is created', async (t) => {
  const unsure = definePlugin({
    name: 'unsure',
    create: () => ({
      operations: [
        defineCall({
          name: 'GetMiner',
          source: 'test',
          summary: 'Names a provider.',
          access: 'signed',
          on: { method: 'GET', resource: 'service', path: '/-/unsure/v1/miner' },
          result: z.object({ MinerId: z.string(), Miner_ID: z.string() }),
          answer: async () => ({ MinerId: 'f01', Miner_ID: 'f02' }),
        }),
      ],
    }),
  })
  await t.rejects(startInProcess(t, 'full', { plugins: [unsure()] }), {
    name: 'PluginError',
    problems: [/^the plugin "unsure": GetMiner|MinerId/],
  })
})
