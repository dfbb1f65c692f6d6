import type { Test } from 'tap'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { behindTheBack } from './behind-the-back.js'
import { awsCli, rclone } from './clients.js'
import { folderObjects, keys, operations } from './operations.js'
import { BRAND, startRealGateway } from './real-gateway.js'

/** The operations, and two clients that copy folders, each in short, against a gateway that is not ours. */
export async function realGateway(t: Test, drives: 1 | 4): Promise<void> {
  const gateway = await startRealGateway(t, drives)
  if (!gateway) return
  // Before the first subtest: tap ends a file's own test when it waits for something else between two of them.
  const [version] = await awsVersions(t)
  const server = await startDealgate(t, { mode: 'legacy', gateway, args: BRAND })
  t.equal((await fetch(`${server.endpoint}/-/ready`)).status, 200)
  await t.test('operations', (t) => operations(t, server))
  await t.test('keys', (t) => keys(t, server))
  await t.test('folder objects', (t) => folderObjects(t, server, gateway))
  await t.test('changed behind the back', (t) => behindTheBack(t, server, gateway))
  await t.test('rclone', (t) => rclone(t, server))
  if (version) await t.test('aws-cli', (t) => awsCli(t, server, version))
}
