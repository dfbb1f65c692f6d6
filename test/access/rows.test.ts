import t from 'tap'
import { actionsOf } from '../../src/access/language/patterns.js'
import { actionNames } from '../../src/plugins/actions.js'
import { rowsOf } from '../../src/plugins/table.js'
import { refusedOperations } from '../../src/s3/refused.js'
import { corePlugins } from '../../src/server/core-plugins.js'

/** Operations that read and change nothing of anyone, or that check a proof of their own. */
const WITHOUT = [
  'SecurityTokenService',
  'PreflightBucket',
  'PreflightObject',
  'Live',
  'Ready',
  ...['ListObjects', 'ListObjectsV2', 'HeadBucket', 'GetBucketLocation', 'CreateBucket'].flatMap((name) => [
    `${name}OfService`,
    `${name}OfServiceRoot`,
  ]),
  ...refusedOperations.map(({ name }) => name),
]

t.test('every operation declares the actions that policies decide about', async (t) => {
  for (const { plugin, operation } of rowsOf(corePlugins)) {
    const names = actionNames(operation.action, plugin)
    if (operation.action === 'none') t.ok(WITHOUT.includes(operation.name), `${operation.name} has nothing to decide`)
    else t.ok(names.length > 0, `${operation.name} declares ${names}`)
    for (const name of names) {
      if (!name.startsWith('s3:') || operation.on.resource === 'service') continue
      const [known, ...others] = actionsOf(name)
      t.same([known?.name, others], [name, []], `${name} is an action of S3`)
      const on =
        operation.on.resource === 'object' || (typeof operation.action === 'object' && 'each' in operation.action)
          ? 'object'
          : operation.on.resource
      t.equal(known?.on, on, `${name} of ${operation.name} is about its resource`)
    }
  }
})
