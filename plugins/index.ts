/** The plugins that ship with dealgate, by name. All of them run unless the configuration lists others. */
export { default as deal } from './deal/index.js'
export { default as pay } from './pay/index.js'
export { default as task } from './task/index.js'
