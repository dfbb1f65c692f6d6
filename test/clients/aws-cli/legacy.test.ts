import t from 'tap'
import { awsVersions } from '../../harness/aws-cli.js'
import { startDealgate } from '../../harness/dealgate.js'
import { matrix } from './matrix.js'

const versions = await awsVersions(t)
if (versions.length > 0) {
  const server = await startDealgate(t, { mode: 'legacy' })
  for (const version of versions) t.test(version.name, (t) => matrix(t, version, server))
}
