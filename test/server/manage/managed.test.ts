import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Config } from '../../../src/cli/config/config.js'
import { openManaged } from '../../../src/cli/serve/managed.js'
import { createLogger } from '../../../src/common/log.js'
import { openAccountRegistry } from '../../../src/services/gateway/accounts/account-registry.js'

function managed(data: string, more: Partial<Config> = {}) {
  const config = { data, ...more } as Config
  return openManaged({
    config: () => config,
    checks: () => ({ owner: 'owner' }),
    log: createLogger({ level: 'silent' }),
  })
}

t.test('accounts, as calls manage them', async (t) => {
  const data = t.testdir({})
  await (await openAccountRegistry(join(data, 'services'))).close()
  const { accounts, close } = managed(data)
  await accounts?.add('tenant', '')
  const opened = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).endsWith('/index.db')
      } catch {
        return false
      }
    }).length
  if (process.platform === 'linux') {
    const before = opened()
    for (let i = 0; i < 20; i++) t.equal((await accounts?.all())?.length, 1)
    t.equal(opened(), before, 'the database is opened once')
  }
  close()
  const shared = managed(data, { state: 'redis://127.0.0.1:1' })
  await t.rejects(
    async () => shared.accounts?.rotate('tenant'),
    { code: 'NotImplemented' },
    'other servers would keep the former secret',
  )
  shared.close()
})
