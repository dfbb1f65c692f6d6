// `.taprc` loads this into the process of each test file. tap has every child process of a test load its hooks for
// coverage, by NODE_OPTIONS; the programs that a test starts run without them.
import processOnSpawn from 'process-on-spawn'

const HOOK = /\s*"?--import=[^"\s]*@tapjs\/processinfo[^"\s]*"?/g

processOnSpawn.addListener((child) => {
  const { NODE_OPTIONS = '', ...others } = child.env
  const env = Object.entries(others).filter(([name]) => !name.startsWith('_TAPJS_'))
  const options = NODE_OPTIONS.replace(HOOK, '').trim()
  child.env = Object.fromEntries(options === '' ? env : [...env, ['NODE_OPTIONS', options]])
})
