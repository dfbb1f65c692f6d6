import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, Program } from './program.js'

/** nginx as a reverse proxy with kept connections to `upstream`, one worker, large buffers, no files for bodies. */
export async function startNginx(folder: string, upstream: number): Promise<{ program: Program; port: number }> {
  const port = await freePort()
  const home = join(folder, 'nginx')
  await mkdir(home, { recursive: true })
  await writeFile(join(home, 'nginx.conf'), configuration(home, port, upstream))
  const program = new Program('nginx', ['-p', home, '-c', join(home, 'nginx.conf'), '-e', join(home, 'error.log')])
  await program.answers(port)
  return { program, port }
}

function configuration(home: string, port: number, upstream: number): string {
  return `
daemon off;
worker_processes 1;
pid ${home}/pid;
error_log ${home}/error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${home}/body;
  proxy_temp_path ${home}/proxy;
  fastcgi_temp_path ${home}/fastcgi;
  uwsgi_temp_path ${home}/uwsgi;
  scgi_temp_path ${home}/scgi;
  client_max_body_size 0;
  keepalive_requests 1000000;
  upstream gateway { server 127.0.0.1:${upstream}; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} reuseport;
    location / {
      proxy_pass http://gateway;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
      proxy_buffer_size 16k;
      proxy_buffers 8 512k;
      proxy_busy_buffers_size 1m;
    }
  }
}
`
}
