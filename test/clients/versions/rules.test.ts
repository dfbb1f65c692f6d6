import { resolve } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { findBuilt } from '../../support/programs/run.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { Caller } from './caller.js'
import { lockRules, Requests, versionRules } from './rules.js'

// The rules of versions and locks, each a few requests, as aws-cli and boto3 send them at their defaults.

const server = await startDealgate(t)
const cli = resolve('.ci/venv/bin/python3')
const clients = resolve('.ci/clients/bin/python3')
const hasCli = await findBuilt(t, 'aws-cli (.ci/run)', cli)
const hasBoto3 = await findBuilt(t, 'boto3 (.ci/run)', clients)
if (hasCli) await t.test('aws-cli', (t) => follow(t, 'aws-cli', cli))
if (hasBoto3) await t.test('boto3', (t) => follow(t, 'boto3', clients))

async function follow(t: Test, name: string, python: string): Promise<void> {
  const caller = new Caller(t, python, [name, server.endpoint], {
    ...{ AWS_ACCESS_KEY_ID: server.accessKey, AWS_SECRET_ACCESS_KEY: server.secretKey },
    ...{ AWS_DEFAULT_REGION: server.region, AWS_EC2_METADATA_DISABLED: 'true', HOME: temporaryFolder(t) },
  })
  const versions = new Requests(server, caller, `${name}-versions`)
  await versions.create('Enabled')
  for (const [rule, keep] of Object.entries(versionRules)) await t.test(rule, (t) => keep(t, versions))
  const locks = new Requests(server, caller, `${name}-locks`)
  await locks.create(undefined, { ObjectLockEnabledForBucket: true })
  for (const [rule, keep] of Object.entries(lockRules)) await t.test(rule, (t) => keep(t, locks))
}
