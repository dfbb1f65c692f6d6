import t from 'tap'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { allVersions } from './matrix.js'

const versions = await awsVersions(t, 'each')
if (versions.length > 0) await allVersions(t, versions, await startDealgate(t, { mode: 'legacy' }))
