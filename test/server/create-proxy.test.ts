import { pino } from 'pino'
import t from 'tap'
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
