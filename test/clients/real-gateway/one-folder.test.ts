import t from 'tap'
import { realGateway } from './matrix.js'

await realGateway(t, 1)
