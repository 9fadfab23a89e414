# What an administrator does with hookbus.service; says what came of it. Each wait ends with the
# service that runs this.
exec >/play/said
config=/etc/hookbus/hookbus.yaml
hookbus() { setpriv --reuid=hookbus --regid=hookbus --clear-groups /opt/hookbus/bin/hookbus "$@"; }
show() { systemctl show hookbus --value --property="$1"; }

until journalctl --unit=hookbus --output=cat | grep -q '"message":"running"'; do sleep 0.1; done
grep -E '^(CapBnd|NoNewPrivs|Seccomp):' "/proc/$(show MainPID)/status" | tr -d '\t' | tr : =
hookbus publish -c "$config" --ingress agents /checkout/router/demo_session.jsonl
until [ "$(wc -l </var/lib/hookbus/archive.jsonl)" -ge 24 ]; do sleep 0.1; done
echo "delivered=$(wc -l </var/lib/hookbus/archive.jsonl)"
/opt/hookbus/bin/python -c 'from urllib.request import urlopen
seen = urlopen("http://127.0.0.1:9464/metrics").read().decode()
print("process metrics=", seen.count("\nprocess_start_time_seconds "), sep="")'

systemctl reload hookbus; echo "reload=$?"
until journalctl --unit=hookbus --output=cat | grep -q '"configuration unchanged"'; do sleep 0.1; done
echo 'bus: {}' >"$config"
systemctl reload hookbus; echo "reload of a wrong one=$?"
systemctl stop hookbus
echo "after the stop=$(show ActiveState) $(show Result) $(show ExecMainStatus)"

systemctl start hookbus
until [ "$(show ActiveState)" = failed ]; do sleep 0.1; done
echo "with a wrong one=failed $(show Result) $(show ExecMainStatus) $(show NRestarts)"
