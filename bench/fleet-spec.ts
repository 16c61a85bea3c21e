/** Four resources a server: itself, its address, its card, its firewall. */
export function fleetSpec(servers: number): string {
  const one = (at: number) => `
  web-${at}:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    public_ipv4: {new: true}
    network_interfaces: [backend]
    firewall: {enabled: true, rules: [{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}]}`;
  return `
networks:
  backend: {cidr: 10.20.0.0/16}
servers:${Array.from({ length: servers }, (_, at) => one(at)).join('')}
`;
}
