import t from 'tap'
import type { Upkeep } from '../../../plugins/upkeep/index.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const account = { accessKey: 'tenant-account', secretKey: 'tenant-secret' }
const others = [
  {
    ...{ accessKeyId: 'limited-key', secretAccessKey: 'limited-secret' },
    rights: [{ bucket: 'any', access: 'read' as const }],
  },
  { accessKeyId: 'tenant-key', secretAccessKey: 'tenant-secret', account },
]

t.test('the owner reads what must be renewed in time', async (t) => {
  let taken: number | undefined
  let certificates: ReturnType<Upkeep['certificates']> = []
  const reads = { lastBackup: () => taken, certificates: () => certificates }
  const { endpoint } = await startInProcess(t, 'full', {
    identities: [owner, ...others],
    standard: { upkeep: { reads } },
  })
  const headers = { accept: 'application/json' }
  const ask = (keys: typeof owner) => signedRequest(endpoint, keys, { method: 'GET', path: '/-/upkeep/v1', headers })
  const read = async () => JSON.parse((await ask(owner)).body)
  for (const keys of others) t.match(await ask(keys), { status: 403, body: /AccessDenied/ }, keys.accessKeyId)
  t.same(await read(), { Certificates: [] }, 'no backup, no certificate')
  taken = Date.UTC(2026, 0, 2)
  certificates = [
    { option: 'tls-cert', number: 2, until: Date.UTC(2027, 0, 1) },
    { option: 'gateway-cert', number: 1, until: Date.UTC(2028, 0, 1) },
  ]
  t.same(await read(), {
    LastBackup: '2026-01-02T00:00:00.000Z',
    Certificates: [
      { Option: 'tls-cert', Number: 2, ValidUntil: '2027-01-01T00:00:00.000Z' },
      { Option: 'gateway-cert', Number: 1, ValidUntil: '2028-01-01T00:00:00.000Z' },
    ],
  })
})
