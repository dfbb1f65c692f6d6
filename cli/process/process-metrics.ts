import { readdirSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks'
import { version } from '../../common/files/package-folder.js'
import type { Metrics } from '../../common/metrics.js'

/** Resolution of the measured delay of the event loop, ms. */
const RESOLUTION_MS = 20
const GC_SECONDS = [0.001, 0.01, 0.1, 1]

/**
 * Adds the metrics of this process, with the names that prom-client and most dashboards for Node use.
 * @returns a function that ends the measurements
 */
export function processMetrics(metrics: Metrics): () => void {
  usage(metrics)
  memory(metrics)
  const ends = [eventLoop(metrics), garbageCollection(metrics)]
  return () => {
    for (const end of ends) end()
  }
}

function usage(metrics: Metrics): void {
  metrics.gauge({
    name: 'dealgate_build_info',
    help: 'Always 1; the labels have the versions of dealgate and of Node.',
    aggregator: 'max',
    read: () => [{ labels: { version: version(), node: process.versions.node }, value: 1 }],
  })
  metrics.gauge({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process in user and system mode.',
    type: 'counter',
    read: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  metrics.gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the process, seconds since 1970; of several processes the last one.',
    aggregator: 'max',
    read: () => performance.timeOrigin / 1000,
  })
  metrics.gauge({
    name: 'process_open_fds',
    help: 'Open file descriptors; absent where the system does not list them.',
    read: () => readdirSync('/proc/self/fd').length - 1,
  })
}

function memory(metrics: Metrics): void {
  const gauge = (name: string, help: string, part: keyof NodeJS.MemoryUsage) =>
    metrics.gauge({ name, help, read: () => process.memoryUsage()[part] })
  gauge('process_resident_memory_bytes', 'Resident memory of the process.', 'rss')
  gauge('nodejs_heap_size_total_bytes', 'Size of the heap of JavaScript.', 'heapTotal')
  gauge('nodejs_heap_size_used_bytes', 'Used part of the heap of JavaScript.', 'heapUsed')
  gauge('nodejs_external_memory_bytes', 'Memory of objects outside the heap, such as buffers.', 'external')
}

function eventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let last = performance.eventLoopUtilization()
  metrics.gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'Delay of the event loop since the last scrape, at some percentiles; of several processes the largest.',
    aggregator: 'max',
    read: () => {
      // The label `quantile` is for summaries: https://prometheus.io/docs/instrumenting/exposition_formats/
      const at = (percentile: number) => ({
        labels: { percentile },
        // The histogram holds the intervals between ticks.
        value: delay.count === 0 ? 0 : Math.max(0, delay.percentile(percentile) / 1e9 - RESOLUTION_MS / 1000),
      })
      const samples = [at(50), at(90), at(99), at(100)]
      delay.reset()
      return samples
    },
  })
  metrics.gauge({
    name: 'nodejs_eventloop_utilization_ratio',
    help: 'Part of the time since the last scrape for which the event loop was busy; of several processes the mean.',
    aggregator: 'average',
    read: () => {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
  })
  return () => delay.disable()
}

const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

function garbageCollection(metrics: Metrics): () => void {
  const seconds = metrics.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Pauses for garbage collection, by kind.',
    labels: ['kind'],
    bounds: GC_SECONDS,
  })
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind = 0 } = (entry as { detail?: { kind?: number } }).detail ?? {}
      seconds.of(GC_KINDS[kind] ?? 'other').observe(entry.duration / 1000)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => observer.disconnect()
}
