import t from 'tap'
import { awsVersions } from '../../harness/aws-cli.js'
import { startDealgate } from '../../harness/dealgate.js'
import { allVersions } from './matrix.js'

const versions = await awsVersions(t)
if (versions.length > 0) await allVersions(t, versions, await startDealgate(t, { mode: 'full' }))
