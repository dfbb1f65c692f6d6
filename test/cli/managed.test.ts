import { join } from 'node:path'
import t from 'tap'
import type { Config } from '../../cli/config/config.js'
import { openManaged } from '../../cli/serve/managed.js'
import { createLogger } from '../../common/log.js'
import { openAccountRegistry } from '../../services/gateway/accounts/account-registry.js'

t.test('the secret of an account is not replaced where other servers would keep the former one', async (t) => {
  const data = t.testdir({})
  await (await openAccountRegistry(join(data, 'services'))).close()
  const config = { data, state: 'redis://127.0.0.1:1' } as Config
  const log = createLogger({ level: 'silent' })
  const shared = openManaged({ config: () => config, checks: () => ({ owner: 'owner' }), log })
  t.teardown(shared.close)
  await t.rejects(async () => shared.accounts?.rotate('tenant'), { code: 'NotImplemented' })
})
