/** The plugins that ship with dealgate, by name. All of them run unless the configuration lists others. */
export { default as deal } from '../plugins/deal/index.js'
export { default as pay } from '../plugins/pay/index.js'
export { default as task } from '../plugins/task/index.js'
